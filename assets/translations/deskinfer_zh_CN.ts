<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE TS>
<TS version="2.1" language="zh_CN" sourcelanguage="en">
<context>
    <name>windows</name>
    <message>
        <source>Reading {done} of {total} tokens</source>
        <translation>正在读取：{done} / {total} 个词元</translation>
    </message>
    <message>
        <source>{prompt} tokens read, {cached} of them already known; {new} tokens written</source>
        <translation>读取 {prompt} 个词元，其中 {cached} 个已有缓存；生成 {new} 个词元</translation>
    </message>
    <message>
        <source>Loading {model}: {percent} %</source>
        <translation>正在加载 {model}：{percent} %</translation>
    </message>
    <message>
        <source>Waiting for the model</source>
        <translation>正在等待模型</translation>
    </message>
    <message>
        <source>Stopped</source>
        <translation>已停止</translation>
    </message>
    <message>
        <source>Ended at the length limit</source>
        <translation>已达长度上限</translation>
    </message>
    <message>
        <source>Reading the text</source>
        <translation>正在读取文字</translation>
    </message>
    <message>
        <source>{speed} tokens/s</source>
        <translation>{speed} 词元/秒</translation>
    </message>
    <message>
        <source>first after {seconds} s</source>
        <translation>首个用时 {seconds} 秒</translation>
    </message>
    <message>
        <source>Something unexpected happened ({kind}). The program goes on; the log has the details.</source>
        <translation>发生意外错误（{kind}）。程序继续运行，详情见日志。</translation>
    </message>
    <message>
        <source>Your files need a correction</source>
        <translation>您的文件需要修正</translation>
    </message>
    <message>
        <source>Not all hotkeys work</source>
        <translation>部分快捷键不可用</translation>
    </message>
    <message>
        <source>{action} (clipboard)</source>
        <translation>{action}（剪贴板）</translation>
    </message>
    <message>
        <source>Go to the answer</source>
        <translation>转到回答</translation>
    </message>
    <message>
        <source>Load the model</source>
        <translation>加载模型</translation>
    </message>
    <message>
        <source>Free the model's memory</source>
        <translation>释放模型占用的内存</translation>
    </message>
    <message>
        <source>Open the window</source>
        <translation>打开窗口</translation>
    </message>
    <message>
        <source>Open the folder of your own actions</source>
        <translation>打开自定义动作文件夹</translation>
    </message>
    <message>
        <source>Quit</source>
        <translation>退出</translation>
    </message>
    <message>
        <source>Nothing is selected</source>
        <translation>没有选中文字</translation>
    </message>
    <message>
        <source>Its program marked this text as a password, so it is not read and not given to the model.</source>
        <translation>来源程序将这段文字标记为密码，因此不会读取，也不会交给模型。</translation>
    </message>
    <message>
        <source>The clipboard holds the text below. It has not been given to the model.</source>
        <translation>剪贴板里是下面这段文字，尚未交给模型。</translation>
    </message>
    <message>
        <source>Put the answer in the place of the selection ({keys})</source>
        <translation>用回答替换选中的文字（{keys}）</translation>
    </message>
    <message>
        <source>The window that the text came from is no longer there or did not come back.</source>
        <translation>文字来源的窗口已不存在，或没有回到前台。</translation>
    </message>
    <message>
        <source>Keys were held down, so nothing was sent.</source>
        <translation>有按键一直按着，因此没有发送任何内容。</translation>
    </message>
    <message>
        <source>The other program did not take the text.</source>
        <translation>对方程序没有接收文字。</translation>
    </message>
    <message>
        <source>What lies on the clipboard is marked as a password and is not read.</source>
        <translation>剪贴板内容被标记为密码，不会读取。</translation>
    </message>
    <message>
        <source>This is a password</source>
        <translation>这是密码</translation>
    </message>
    <message>
        <source>The selection could not be read</source>
        <translation>无法读取选中的文字</translation>
    </message>
    <message>
        <source>The text came from no other window, so there is nothing to replace.</source>
        <translation>文字不是来自其他窗口，没有可替换的内容。</translation>
    </message>
    <message>
        <source>Terminals cannot be pasted into safely; copy the answer instead.</source>
        <translation>无法安全地粘贴到终端，请改用复制。</translation>
    </message>
    <message>
        <source>Insert the answer where the cursor stands ({keys})</source>
        <translation>在光标处插入回答（{keys}）</translation>
    </message>
    <message>
        <source>The answer is still here: copy it, or try again.</source>
        <translation>回答仍在这里：可以复制，或再试一次。</translation>
    </message>
    <message>
        <source>The text was not replaced</source>
        <translation>文字未被替换</translation>
    </message>
    <message>
        <source>Use this text</source>
        <translation>使用这段文字</translation>
    </message>
    <message>
        <source>Mark text in the terminal with the mouse and press the hotkey again.</source>
        <translation>请用鼠标在终端中选中文字，再按一次快捷键。</translation>
    </message>
    <message>
        <source>The clipboard holds no text</source>
        <translation>剪贴板里没有文字</translation>
    </message>
    <message>
        <source>Copy a text, then run the action again.</source>
        <translation>请先复制一段文字，再执行动作。</translation>
    </message>
    <message>
        <source>Select a text and press the hotkey again.</source>
        <translation>请选中一段文字，再按一次快捷键。</translation>
    </message>
    <message>
        <source>The engine failed</source>
        <translation>引擎出错</translation>
    </message>
    <message>
        <source>Try again. If it happens again, run `deskinfer doctor`.</source>
        <translation>请重试。若再次出现，请运行 `deskinfer doctor`。</translation>
    </message>
    <message>
        <source>This cannot be run</source>
        <translation>无法执行</translation>
    </message>
    <message>
        <source>Select some text and try again.</source>
        <translation>请选中文字后重试。</translation>
    </message>
    <message>
        <source>The model file is damaged</source>
        <translation>模型文件已损坏</translation>
    </message>
    <message>
        <source>Run `deskinfer models verify`, or download the model again.</source>
        <translation>请运行 `deskinfer models verify`，或重新下载模型。</translation>
    </message>
    <message>
        <source>This model is not supported</source>
        <translation>不支持这个模型</translation>
    </message>
    <message>
        <source>Choose another model in the settings.</source>
        <translation>请在设置中选择其他模型。</translation>
    </message>
    <message>
        <source>The model was not found</source>
        <translation>找不到模型</translation>
    </message>
    <message>
        <source>Run `deskinfer models pull`, or correct the model in the settings.</source>
        <translation>请运行 `deskinfer models pull`，或在设置中更正模型。</translation>
    </message>
    <message>
        <source>The model could not be downloaded</source>
        <translation>模型下载失败</translation>
    </message>
    <message>
        <source>Check the network and the free disk space, then try again; the download goes on where it stopped.</source>
        <translation>请检查网络和磁盘空间后重试；下载会从中断处继续。</translation>
    </message>
    <message>
        <source>Another program holds the model</source>
        <translation>模型正被其他程序占用</translation>
    </message>
    <message>
        <source>End the other program, or unload its model, then try again.</source>
        <translation>请关闭该程序或卸载它的模型，然后重试。</translation>
    </message>
    <message>
        <source>The engine cannot work on this machine</source>
        <translation>引擎无法在本机运行</translation>
    </message>
    <message>
        <source>Run `deskinfer doctor`; it tells what is missing.</source>
        <translation>请运行 `deskinfer doctor`，查看缺少什么。</translation>
    </message>
    <message>
        <source>The engine has stopped</source>
        <translation>引擎已停止</translation>
    </message>
    <message>
        <source>End the program and start it again.</source>
        <translation>请退出程序后重新启动。</translation>
    </message>
    <message>
        <source>The text is {prompt} tokens long, but the model can hold {context} together with the answer. Select a shorter text, or raise the context in the settings.</source>
        <translation>文字有 {prompt} 个词元，而模型连同回答最多容纳 {context} 个。请选择较短的文字，或在设置中增大上下文长度。</translation>
    </message>
    <message>
        <source>There is not enough memory for the model</source>
        <translation>内存不足，无法加载模型</translation>
    </message>
    <message>
        <source>It needs {needed}, and {free} are free. Close other programs, or choose a smaller model or context.</source>
        <translation>需要 {needed}，可用 {free}。请关闭其他程序，或选择更小的模型或上下文长度。</translation>
    </message>
    <message>
        <source>The text is too long</source>
        <translation>文字太长</translation>
    </message>
    <message>
        <source>It already runs "{action}". Choose another combination in the settings.</source>
        <translation>它已用于“{action}”。请在设置中换一个组合键。</translation>
    </message>
    <message>
        <source>This desktop shows no tray icons, so this window stands in for the icon. Minimize it to keep the hotkeys; closing it ends the program.</source>
        <translation>此桌面没有托盘，因此由本窗口代替托盘图标。最小化可保留快捷键；关闭窗口会退出程序。</translation>
    </message>
    <message>
        <source>Paste or type a text here, then choose an action.</source>
        <translation>在此粘贴或输入文字，然后选择动作。</translation>
    </message>
    <message>
        <source>Text</source>
        <translation>文字</translation>
    </message>
    <message>
        <source>Try again</source>
        <translation>重试</translation>
    </message>
    <message>
        <source>Try to register the hotkeys again</source>
        <translation>重新注册快捷键</translation>
    </message>
    <message>
        <source>Hotkeys</source>
        <translation>快捷键</translation>
    </message>
    <message>
        <source>works</source>
        <translation>可用</translation>
    </message>
    <message>
        <source>Close</source>
        <translation>关闭</translation>
    </message>
    <message>
        <source>Progress</source>
        <translation>进度</translation>
    </message>
    <message>
        <source>Answer</source>
        <translation>回答</translation>
    </message>
    <message>
        <source>Stop</source>
        <translation>停止</translation>
    </message>
    <message>
        <source>Copy</source>
        <translation>复制</translation>
    </message>
    <message>
        <source>Replace</source>
        <translation>替换</translation>
    </message>
    <message>
        <source>Stop writing ({keys})</source>
        <translation>停止生成（{keys}）</translation>
    </message>
    <message>
        <source>Run the action again on the same text ({keys})</source>
        <translation>对同一段文字重新执行（{keys}）</translation>
    </message>
    <message>
        <source>Copy the answer ({keys})</source>
        <translation>复制回答（{keys}）</translation>
    </message>
    <message>
        <source>Copied</source>
        <translation>已复制</translation>
    </message>
    <message>
        <source>The model could not be loaded: {reason}</source>
        <translation>模型加载失败：{reason}</translation>
    </message>
    <message>
        <source>Unloading {model}</source>
        <translation>正在卸载 {model}</translation>
    </message>
    <message>
        <source>No model is loaded; the next action loads one</source>
        <translation>未加载模型，下次执行动作时加载</translation>
    </message>
    <message>
        <source>Working: {model}</source>
        <translation>工作中：{model}</translation>
    </message>
    <message>
        <source>Ready: {model}</source>
        <translation>就绪：{model}</translation>
    </message>
    <message>
        <source>Free memory: {size}</source>
        <translation>可用内存：{size}</translation>
    </message>
    <message>
        <source>On the clipboard's text</source>
        <translation>对剪贴板文字</translation>
    </message>
</context>
</TS>
