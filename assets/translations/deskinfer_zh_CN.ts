<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE TS>
<TS version="2.1" language="zh_CN" sourcelanguage="en">
<context>
    <name>windows</name>
    <message>
        <source>Remove the # in front of a line to change it. The file is read again when you save it.</source>
        <translation>去掉行首的 # 即可修改该行。保存后会自动重新读取。</translation>
    </message>
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
        <source>Reading the selection…</source>
        <translation>正在读取所选文字…</translation>
    </message>
    <message>
        <source>The text below was last selected in this program. It has not been given to the model.</source>
        <translation>下面是此程序中上次选中的文字，尚未交给模型。</translation>
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
        <source>Get a model…</source>
        <translation>获取模型…</translation>
    </message>
    <message>
        <source>The model is not on this computer yet</source>
        <translation>模型还不在本机上</translation>
    </message>
    <message>
        <source>Free the memory now</source>
        <translation>释放模型占用的内存</translation>
    </message>
    <message>
        <source>Open the window</source>
        <translation>打开窗口</translation>
    </message>
    <message>
        <source>Open the folder of your own actions</source>
        <translation>打开自定义操作文件夹</translation>
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
        <translation>请先复制一段文字，再执行操作。</translation>
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
        <source>Choose the engine “Fastest that works here” in the settings: what works here is then taken.</source>
        <translation>请在设置中把“引擎”设为“本机可用的最快者”：程序就会使用本机可用的引擎。</translation>
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
        <source>Paste or type a text here, then choose an action.</source>
        <translation>在此粘贴或输入文字，然后选择操作。</translation>
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
        <source>Unloading {model}</source>
        <translation>正在卸载 {model}</translation>
    </message>
    <message>
        <source>No model is loaded; the next action loads one</source>
        <translation>未加载模型，下次执行操作时加载</translation>
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
    <message>
        <source>DeskInfer goes on, and so do its hotkeys.</source>
        <translation>DeskInfer 仍在运行，快捷键照常可用。</translation>
    </message>
    <message>
        <source>Start DeskInfer again to see its window; “Quit” there ends the program.</source>
        <translation>再次启动 DeskInfer 即可显示窗口；窗口中的“退出”会结束程序。</translation>
    </message>
    <message>
        <source>OK</source>
        <translation>好</translation>
    </message>
    <message>
        <source>This desktop shows no tray icons, so this window stands in for the icon. The hotkeys go on when it is closed; start DeskInfer again to see it.</source>
        <translation>此桌面不显示托盘图标，因此由本窗口代替。关闭窗口后快捷键照常可用；再次启动 DeskInfer 即可显示窗口。</translation>
    </message>
</context>
<context>
    <name>action_file</name>
    <message>
        <source>a text in quotes, like "text"</source>
        <translation>加引号的文本，例如 "text"</translation>
    </message>
    <message>
        <source>a whole number</source>
        <translation>整数</translation>
    </message>
    <message>
        <source>a number</source>
        <translation>数字</translation>
    </message>
    <message>
        <source>true or false</source>
        <translation>true 或 false</translation>
    </message>
    <message>
        <source>a list, like ["a", "b"]</source>
        <translation>列表，例如 ["a", "b"]</translation>
    </message>
    <message>
        <source>a table, like [prompt.en]</source>
        <translation>表，例如 [prompt.en]</translation>
    </message>
    <message>
        <source>There is no prompt. Add a table [prompt.en] with a line user = "{text}".</source>
        <translation>缺少提示词。请添加表 [prompt.en]，并写一行 user = "{text}"。</translation>
    </message>
    <message>
        <source>Each example is a table of its own: [[{table}]].</source>
        <translation>每个示例都要单独写成一个表：[[{table}]]。</translation>
    </message>
    <message>
        <source>An example in [[{table}]] has no &quot;{key}&quot;. Add it.</source>
        <translation>[[{table}]] 中有一个示例缺少 &quot;{key}&quot;。请加上。</translation>
    </message>
    <message>
        <source>The user prompt of [{table}] has no {placeholder}, so the model would never see the text. Add it.</source>
        <translation>[{table}] 的 user 提示词中没有 {placeholder}，模型将看不到文字。请加上。</translation>
    </message>
    <message>
        <source>{where} holds the unknown placeholder {name}. Did you mean {near}?</source>
        <translation>{where} 中有未知的占位符 {name}。是否想写 {near}？</translation>
    </message>
    <message>
        <source>{key} is {value}, but it must be {kind}.</source>
        <translation>{key} 的值是 {value}，但必须是{kind}。</translation>
    </message>
    <message>
        <source>The file cannot be read: {reason}.</source>
        <translation>无法读取文件：{reason}。</translation>
    </message>
    <message>
        <source>The file is not UTF-8 text. Save it as UTF-8.</source>
        <translation>文件不是 UTF-8 文本。请以 UTF-8 保存。</translation>
    </message>
    <message>
        <source>This is not TOML: {reason}.</source>
        <translation>这不是有效的 TOML：{reason}。</translation>
    </message>
    <message>
        <source>output is "{value}", but it must be "text", "changes" or "todos".</source>
        <translation>output 的值是“{value}”，但必须是 "text"、"changes" 或 "todos"。</translation>
    </message>
    <message>
        <source>The key "{key}" is unknown here. Did you mean "{near}"?</source>
        <translation>此处不认识键“{key}”。是否想写“{near}”？</translation>
    </message>
    <message>
        <source>The key "{key}" is unknown here. Known are: {known}.</source>
        <translation>此处不认识键“{key}”。可用的键：{known}。</translation>
    </message>
    <message>
        <source>sampling.stop must hold texts only. Put each in quotes.</source>
        <translation>sampling.stop 只能包含文本。请给每一项加引号。</translation>
    </message>
    <message>
        <source>The table [sampling]: {reason}</source>
        <translation>表 [sampling]：{reason}</translation>
    </message>
    <message>
        <source>DeskInfer goes on, and so do its hotkeys.</source>
        <translation>DeskInfer 仍在运行，快捷键照常可用。</translation>
    </message>
    <message>
        <source>Start DeskInfer again to see its window; “Quit” there ends the program.</source>
        <translation>再次启动 DeskInfer 即可显示窗口；窗口中的“退出”会结束程序。</translation>
    </message>
    <message>
        <source>OK</source>
        <translation>好</translation>
    </message>
    <message>
        <source>This desktop shows no tray icons, so this window stands in for the icon. The hotkeys go on when it is closed; start DeskInfer again to see it.</source>
        <translation>此桌面不显示托盘图标，因此由本窗口代替。关闭窗口后快捷键照常可用；再次启动 DeskInfer 即可显示窗口。</translation>
    </message>
</context>
<context>
    <name>actions</name>
    <message>
        <source>{file}: {message}</source>
        <translation>{file}：{message}</translation>
    </message>
    <message>
        <source>{file}, line {line}: {message}</source>
        <translation>{file} 第 {line} 行：{message}</translation>
    </message>
    <message>
        <source>The id "{id}" is already used by {other}. Give this action another id.</source>
        <translation>{other} 已使用 id“{id}”。请给此操作换一个 id。</translation>
    </message>
    <message>
        <source>DeskInfer goes on, and so do its hotkeys.</source>
        <translation>DeskInfer 仍在运行，快捷键照常可用。</translation>
    </message>
    <message>
        <source>Start DeskInfer again to see its window; “Quit” there ends the program.</source>
        <translation>再次启动 DeskInfer 即可显示窗口；窗口中的“退出”会结束程序。</translation>
    </message>
    <message>
        <source>OK</source>
        <translation>好</translation>
    </message>
    <message>
        <source>This desktop shows no tray icons, so this window stands in for the icon. The hotkeys go on when it is closed; start DeskInfer again to see it.</source>
        <translation>此桌面不显示托盘图标，因此由本窗口代替。关闭窗口后快捷键照常可用；再次启动 DeskInfer 即可显示窗口。</translation>
    </message>
</context>
<context>
    <name>capture</name>
    <message>
        <source>Keys are still held down. Release the hotkey and press it again, shortly.</source>
        <translation>按键一直没有松开。请松开快捷键，再短按一次。</translation>
    </message>
    <message>
        <source>Another window came to the front before the selection was read. Try again.</source>
        <translation>读取选中文字之前，另一个窗口到了前面。请再试一次。</translation>
    </message>
    <message>
        <source>DeskInfer goes on, and so do its hotkeys.</source>
        <translation>DeskInfer 仍在运行，快捷键照常可用。</translation>
    </message>
    <message>
        <source>Start DeskInfer again to see its window; “Quit” there ends the program.</source>
        <translation>再次启动 DeskInfer 即可显示窗口；窗口中的“退出”会结束程序。</translation>
    </message>
    <message>
        <source>OK</source>
        <translation>好</translation>
    </message>
    <message>
        <source>This desktop shows no tray icons, so this window stands in for the icon. The hotkeys go on when it is closed; start DeskInfer again to see it.</source>
        <translation>此桌面不显示托盘图标，因此由本窗口代替。关闭窗口后快捷键照常可用；再次启动 DeskInfer 即可显示窗口。</translation>
    </message>
</context>
<context>
    <name>hotkeys</name>
    <message>
        <source>copies in nearly every program</source>
        <translation>在几乎所有程序中是复制</translation>
    </message>
    <message>
        <source>cuts in nearly every program</source>
        <translation>在几乎所有程序中是剪切</translation>
    </message>
    <message>
        <source>pastes in nearly every program</source>
        <translation>在几乎所有程序中是粘贴</translation>
    </message>
    <message>
        <source>undoes in nearly every program</source>
        <translation>在几乎所有程序中是撤销</translation>
    </message>
    <message>
        <source>redoes in many programs</source>
        <translation>在许多程序中是重做</translation>
    </message>
    <message>
        <source>selects all in nearly every program</source>
        <translation>在几乎所有程序中是全选</translation>
    </message>
    <message>
        <source>saves in nearly every program</source>
        <translation>在几乎所有程序中是保存</translation>
    </message>
    <message>
        <source>searches in nearly every program</source>
        <translation>在几乎所有程序中是查找</translation>
    </message>
    <message>
        <source>prints in nearly every program</source>
        <translation>在几乎所有程序中是打印</translation>
    </message>
    <message>
        <source>opens a tab in browsers</source>
        <translation>在浏览器中打开新标签页</translation>
    </message>
    <message>
        <source>closes the tab or window</source>
        <translation>关闭标签页或窗口</translation>
    </message>
    <message>
        <source>opens a new window or document</source>
        <translation>打开新窗口或新文档</translation>
    </message>
    <message>
        <source>opens a file</source>
        <translation>打开文件</translation>
    </message>
    <message>
        <source>switches the input method for Chinese</source>
        <translation>切换中文输入法</translation>
    </message>
    <message>
        <source>copies in terminals</source>
        <translation>在终端中是复制</translation>
    </message>
    <message>
        <source>pastes in terminals, and without formatting elsewhere</source>
        <translation>在终端中是粘贴，在其他程序中是无格式粘贴</translation>
    </message>
    <message>
        <source>is 'save as' in many programs</source>
        <translation>在许多程序中是“另存为”</translation>
    </message>
    <message>
        <source>reopens a tab in browsers</source>
        <translation>在浏览器中重新打开标签页</translation>
    </message>
    <message>
        <source>opens a private window or a folder</source>
        <translation>打开隐私窗口或新建文件夹</translation>
    </message>
    <message>
        <source>opens a private window or the command palette</source>
        <translation>打开隐私窗口或命令面板</translation>
    </message>
    <message>
        <source>opens the developer tools of browsers</source>
        <translation>打开浏览器的开发者工具</translation>
    </message>
    <message>
        <source>reloads without cache in browsers</source>
        <translation>在浏览器中强制刷新</translation>
    </message>
    <message>
        <source>types a character by its code on Linux</source>
        <translation>在 Linux 上按编码输入字符</translation>
    </message>
    <message>
        <source>opens the task manager of Windows</source>
        <translation>打开 Windows 任务管理器</translation>
    </message>
    <message>
        <source>is kept by Windows for switching input languages</source>
        <translation>被 Windows 保留，用于切换输入语言</translation>
    </message>
    <message>
        <source>closes the window</source>
        <translation>关闭窗口</translation>
    </message>
    <message>
        <source>switches windows</source>
        <translation>切换窗口</translation>
    </message>
    <message>
        <source>opens the window menu</source>
        <translation>打开窗口菜单</translation>
    </message>
    <message>
        <source>locks the screen</source>
        <translation>锁定屏幕</translation>
    </message>
    <message>
        <source>shows the desktop</source>
        <translation>显示桌面</translation>
    </message>
    <message>
        <source>switches the input language of Windows</source>
        <translation>切换 Windows 的输入语言</translation>
    </message>
    <message>
        <source>There is no key "{name}" in the hotkey "{text}". Use a letter, a digit, F1 to F24, or a name such as Space, Insert, PageUp or Comma.</source>
        <translation>快捷键“{text}”中的按键“{name}”不存在。请使用字母、数字、F1 到 F24，或 Space、Insert、PageUp、Comma 等名称。</translation>
    </message>
    <message>
        <source>There is no key "{name}" in the hotkey "{text}". Did you mean {near}?</source>
        <translation>快捷键“{text}”中的按键“{name}”不存在。是否想写 {near}？</translation>
    </message>
    <message>
        <source>The hotkey is empty. Write it like Ctrl+Shift+1.</source>
        <translation>快捷键为空。写法例如 Ctrl+Shift+1。</translation>
    </message>
    <message>
        <source>The hotkey "{text}" has {count} keys beside its modifiers, but it must have one, like Ctrl+Shift+1.</source>
        <translation>快捷键“{text}”除修饰键外有 {count} 个按键，但必须正好一个，例如 Ctrl+Shift+1。</translation>
    </message>
    <message>
        <source>The hotkey "{text}" would take a key that people type with. Add Ctrl, Alt or Meta, like Ctrl+Shift+{key}.</source>
        <translation>快捷键“{text}”会占用打字用的按键。请加上 Ctrl、Alt 或 Meta，例如 Ctrl+Shift+{key}。</translation>
    </message>
    <message>
        <source>{hotkey}: Ctrl+Alt is AltGr on many keyboards, so a character such as @, € or ł may no longer be typed. Ctrl+Shift is safer.</source>
        <translation>{hotkey}：在许多键盘上 Ctrl+Alt 就是 AltGr，可能导致无法输入 @、€、ł 等字符。Ctrl+Shift 更稳妥。</translation>
    </message>
    <message>
        <source>{hotkey} {purpose}. While the app runs, no other program gets it.</source>
        <translation>{hotkey} {purpose}。本程序运行期间，其他程序收不到它。</translation>
    </message>
    <message>
        <source>{hotkey} is a shortcut in many programs. While the app runs, no other program gets it.</source>
        <translation>{hotkey} 在许多程序中是快捷键。本程序运行期间，其他程序收不到它。</translation>
    </message>
    <message>
        <source>A key is missing beside "+" in the hotkey "{text}". Write it like Ctrl+Shift+1.</source>
        <translation>快捷键“{text}”的“+”旁缺少按键。写法例如 Ctrl+Shift+1。</translation>
    </message>
    <message>
        <source>DeskInfer goes on, and so do its hotkeys.</source>
        <translation>DeskInfer 仍在运行，快捷键照常可用。</translation>
    </message>
    <message>
        <source>Start DeskInfer again to see its window; “Quit” there ends the program.</source>
        <translation>再次启动 DeskInfer 即可显示窗口；窗口中的“退出”会结束程序。</translation>
    </message>
    <message>
        <source>OK</source>
        <translation>好</translation>
    </message>
    <message>
        <source>This desktop shows no tray icons, so this window stands in for the icon. The hotkeys go on when it is closed; start DeskInfer again to see it.</source>
        <translation>此桌面不显示托盘图标，因此由本窗口代替。关闭窗口后快捷键照常可用；再次启动 DeskInfer 即可显示窗口。</translation>
    </message>
</context>
<context>
    <name>platform.session</name>
    <message>
        <source>There is no display here, so there are no hotkeys. Start the app in a desktop session, or use `deskinfer ask` in the terminal.</source>
        <translation>这里没有显示器，因此没有快捷键。请在桌面会话中启动本程序，或在终端使用 `deskinfer ask`。</translation>
    </message>
    <message>
        <source>The system library libxcb is missing, so there are no hotkeys. Install it (on Debian and Ubuntu: apt install libxcb1) and start the app again.</source>
        <translation>缺少系统库 libxcb，因此没有快捷键。请安装它（Debian 和 Ubuntu：apt install libxcb1），然后重新启动本程序。</translation>
    </message>
    <message>
        <source>There are no hotkeys on macOS yet. Use `deskinfer ask` in the terminal.</source>
        <translation>macOS 上暂无快捷键。请在终端使用 `deskinfer ask`。</translation>
    </message>
    <message>
        <source>The display {display} cannot be opened, so there are no hotkeys. Check DISPLAY and XAUTHORITY, or start the app in a desktop session.</source>
        <translation>无法打开显示 {display}，因此没有快捷键。请检查 DISPLAY 和 XAUTHORITY，或在桌面会话中启动本程序。</translation>
    </message>
    <message>
        <source>DeskInfer goes on, and so do its hotkeys.</source>
        <translation>DeskInfer 仍在运行，快捷键照常可用。</translation>
    </message>
    <message>
        <source>Start DeskInfer again to see its window; “Quit” there ends the program.</source>
        <translation>再次启动 DeskInfer 即可显示窗口；窗口中的“退出”会结束程序。</translation>
    </message>
    <message>
        <source>OK</source>
        <translation>好</translation>
    </message>
    <message>
        <source>This desktop shows no tray icons, so this window stands in for the icon. The hotkeys go on when it is closed; start DeskInfer again to see it.</source>
        <translation>此桌面不显示托盘图标，因此由本窗口代替。关闭窗口后快捷键照常可用；再次启动 DeskInfer 即可显示窗口。</translation>
    </message>
</context>
<context>
    <name>platform.wayland</name>
    <message>
        <source>Wayland lets no program take a hotkey for itself. Bind the command `deskinfer --action summarize` to a key</source>
        <translation>Wayland 不允许程序自行占用快捷键。请把命令 `deskinfer --action summarize` 绑定到按键：</translation>
    </message>
    <message>
        <source>in your desktop's keyboard settings (GNOME: Settings &gt; Keyboard &gt; Custom Shortcuts; KDE: System Settings &gt; Keyboard &gt; Shortcuts; sway and Hyprland: bindsym or bind in the configuration file).</source>
        <translation>在桌面的键盘设置中（GNOME：设置 &gt; 键盘 &gt; 自定义快捷键；KDE：系统设置 &gt; 键盘 &gt; 快捷键；sway 和 Hyprland：配置文件中的 bindsym 或 bind）。</translation>
    </message>
    <message>
        <source>Wayland does not show other programs' windows: copy the text first (Ctrl+C), then start the action; the answer is put on the clipboard for you to paste.</source>
        <translation>Wayland 不提供其他程序的窗口：请先复制文字（Ctrl+C），再启动操作；回答会放到剪贴板上，由您粘贴。</translation>
    </message>
    <message>
        <source>in Settings &gt; Keyboard &gt; View and Customize Shortcuts &gt; Custom Shortcuts.</source>
        <translation>设置 &gt; 键盘 &gt; 查看及自定义快捷键 &gt; 自定义快捷键。</translation>
    </message>
    <message>
        <source>in System Settings &gt; Keyboard &gt; Shortcuts &gt; Add New &gt; Command or Script.</source>
        <translation>系统设置 &gt; 键盘 &gt; 快捷键 &gt; 新增 &gt; 命令或脚本。</translation>
    </message>
    <message>
        <source>in Settings &gt; Input Devices &gt; Keyboard &gt; Keyboard Shortcuts &gt; Custom.</source>
        <translation>设置 &gt; 输入设备 &gt; 键盘 &gt; 键盘快捷键 &gt; 自定义。</translation>
    </message>
    <message>
        <source>in Settings &gt; Keyboard &gt; Application Shortcuts.</source>
        <translation>设置 &gt; 键盘 &gt; 应用程序快捷键。</translation>
    </message>
    <message>
        <source>in ~/.config/sway/config: bindsym Ctrl+Shift+1 exec deskinfer --action summarize</source>
        <translation>~/.config/sway/config：bindsym Ctrl+Shift+1 exec deskinfer --action summarize</translation>
    </message>
    <message>
        <source>in ~/.config/hypr/hyprland.conf: bind = CTRL SHIFT, 1, exec, deskinfer --action summarize</source>
        <translation>~/.config/hypr/hyprland.conf：bind = CTRL SHIFT, 1, exec, deskinfer --action summarize</translation>
    </message>
    <message>
        <source>in ~/.config/niri/config.kdl, under binds: Ctrl+Shift+1 { spawn "deskinfer" "--action" "summarize"; }</source>
        <translation>~/.config/niri/config.kdl 的 binds 中：Ctrl+Shift+1 { spawn "deskinfer" "--action" "summarize"; }</translation>
    </message>
    <message>
        <source>in ~/.config/labwc/rc.xml, as a keybind with the action Execute.</source>
        <translation>~/.config/labwc/rc.xml 中，作为操作（action）为 Execute 的 keybind。</translation>
    </message>
    <message>
        <source>{no_grabs} {place}</source>
        <translation>{no_grabs}{place}</translation>
    </message>
    <message>
        <source>DeskInfer goes on, and so do its hotkeys.</source>
        <translation>DeskInfer 仍在运行，快捷键照常可用。</translation>
    </message>
    <message>
        <source>Start DeskInfer again to see its window; “Quit” there ends the program.</source>
        <translation>再次启动 DeskInfer 即可显示窗口；窗口中的“退出”会结束程序。</translation>
    </message>
    <message>
        <source>OK</source>
        <translation>好</translation>
    </message>
    <message>
        <source>This desktop shows no tray icons, so this window stands in for the icon. The hotkeys go on when it is closed; start DeskInfer again to see it.</source>
        <translation>此桌面不显示托盘图标，因此由本窗口代替。关闭窗口后快捷键照常可用；再次启动 DeskInfer 即可显示窗口。</translation>
    </message>
</context>
<context>
    <name>platform.windows_grabber</name>
    <message>
        <source>this keyboard has no key {key}; choose another one.</source>
        <translation>此键盘没有按键 {key}；请另选一个。</translation>
    </message>
    <message>
        <source>Windows refused this combination (error {code}); choose another one.</source>
        <translation>Windows 拒绝了这个组合键（错误 {code}）；请另选一个。</translation>
    </message>
    <message>
        <source>Windows does not answer; restart the app.</source>
        <translation>Windows 没有响应；请重新启动本程序。</translation>
    </message>
    <message>
        <source>another program uses this combination; choose another one in the settings, or free it there and try again.</source>
        <translation>另一个程序正在使用这个组合键；请在设置中另选一个，或在那边释放后重试。</translation>
    </message>
    <message>
        <source>DeskInfer goes on, and so do its hotkeys.</source>
        <translation>DeskInfer 仍在运行，快捷键照常可用。</translation>
    </message>
    <message>
        <source>Start DeskInfer again to see its window; “Quit” there ends the program.</source>
        <translation>再次启动 DeskInfer 即可显示窗口；窗口中的“退出”会结束程序。</translation>
    </message>
    <message>
        <source>OK</source>
        <translation>好</translation>
    </message>
    <message>
        <source>This desktop shows no tray icons, so this window stands in for the icon. The hotkeys go on when it is closed; start DeskInfer again to see it.</source>
        <translation>此桌面不显示托盘图标，因此由本窗口代替。关闭窗口后快捷键照常可用；再次启动 DeskInfer 即可显示窗口。</translation>
    </message>
</context>
<context>
    <name>platform.x11_grabber</name>
    <message>
        <source>the display does not answer; restart the app.</source>
        <translation>显示服务没有响应；请重新启动本程序。</translation>
    </message>
    <message>
        <source>this is the same key as {other}, which is in use here already.</source>
        <translation>这与 {other} 是同一个按键，而它已在此使用。</translation>
    </message>
    <message>
        <source>DeskInfer goes on, and so do its hotkeys.</source>
        <translation>DeskInfer 仍在运行，快捷键照常可用。</translation>
    </message>
    <message>
        <source>Start DeskInfer again to see its window; “Quit” there ends the program.</source>
        <translation>再次启动 DeskInfer 即可显示窗口；窗口中的“退出”会结束程序。</translation>
    </message>
    <message>
        <source>OK</source>
        <translation>好</translation>
    </message>
    <message>
        <source>This desktop shows no tray icons, so this window stands in for the icon. The hotkeys go on when it is closed; start DeskInfer again to see it.</source>
        <translation>此桌面不显示托盘图标，因此由本窗口代替。关闭窗口后快捷键照常可用；再次启动 DeskInfer 即可显示窗口。</translation>
    </message>
</context>
<context>
    <name>setting_registry</name>
    <message>
        <source>"{value}" is not an address. Write it like https://hub.example.org.</source>
        <translation>“{value}”不是网址。写法例如 https://hub.example.org。</translation>
    </message>
    <message>
        <source>DeskInfer goes on, and so do its hotkeys.</source>
        <translation>DeskInfer 仍在运行，快捷键照常可用。</translation>
    </message>
    <message>
        <source>Start DeskInfer again to see its window; “Quit” there ends the program.</source>
        <translation>再次启动 DeskInfer 即可显示窗口；窗口中的“退出”会结束程序。</translation>
    </message>
    <message>
        <source>OK</source>
        <translation>好</translation>
    </message>
    <message>
        <source>This desktop shows no tray icons, so this window stands in for the icon. The hotkeys go on when it is closed; start DeskInfer again to see it.</source>
        <translation>此桌面不显示托盘图标，因此由本窗口代替。关闭窗口后快捷键照常可用；再次启动 DeskInfer 即可显示窗口。</translation>
    </message>
</context>
<context>
    <name>settings</name>
    <message>
        <source>a text in quotes</source>
        <translation>加引号的文本</translation>
    </message>
    <message>
        <source>a hotkey in quotes</source>
        <translation>加引号的快捷键</translation>
    </message>
    <message>
        <source>There is no setting "{key}". Its value is kept, but nothing reads it.</source>
        <translation>没有设置项“{key}”。它的值会保留，但不起作用。</translation>
    </message>
    <message>
        <source>{key} is {value}, but it must be {limit}. The default is {default}.</source>
        <translation>{key} 的值是 {value}，但必须是{limit}。默认值是 {default}。</translation>
    </message>
    <message>
        <source>The settings in {file} are broken ({reason}). They were set aside as {aside}; the defaults are in force.</source>
        <translation>{file} 中的设置已损坏（{reason}）。已另存为 {aside}，现使用默认值。</translation>
    </message>
    <message>
        <source>There is no setting "{key}". Did you mean "{near}"?</source>
        <translation>没有设置项“{key}”。是否想写“{near}”？</translation>
    </message>
    <message>
        <source>between {minimum} and {maximum}</source>
        <translation>{minimum} 到 {maximum} 之间的值</translation>
    </message>
    <message>
        <source>one of {choices}</source>
        <translation>以下之一：{choices}</translation>
    </message>
    <message>
        <source>The settings in {file} cannot be read: {reason}. The defaults are in force.</source>
        <translation>无法读取 {file} 中的设置：{reason}。现使用默认值。</translation>
    </message>
    <message>
        <source>The settings in {file} are broken ({reason}) and cannot be set aside: {problem}. The defaults are in force.</source>
        <translation>{file} 中的设置已损坏（{reason}），且无法另存：{problem}。现使用默认值。</translation>
    </message>
    <message>
        <source>The settings cannot be saved to {file}: {reason}. Free the disk, or correct the folder's rights.</source>
        <translation>无法把设置保存到 {file}：{reason}。请腾出磁盘空间，或更正文件夹权限。</translation>
    </message>
    <message>
        <source>"{value}" is no size of memory. Write it like 3.5 GB or 800 MB.</source>
        <translation>“{value}”不是内存大小。请写成 3.5 GB 或 800 MB 的形式。</translation>
    </message>
    <message>
        <source>DeskInfer goes on, and so do its hotkeys.</source>
        <translation>DeskInfer 仍在运行，快捷键照常可用。</translation>
    </message>
    <message>
        <source>Start DeskInfer again to see its window; “Quit” there ends the program.</source>
        <translation>再次启动 DeskInfer 即可显示窗口；窗口中的“退出”会结束程序。</translation>
    </message>
    <message>
        <source>OK</source>
        <translation>好</translation>
    </message>
    <message>
        <source>This desktop shows no tray icons, so this window stands in for the icon. The hotkeys go on when it is closed; start DeskInfer again to see it.</source>
        <translation>此桌面不显示托盘图标，因此由本窗口代替。关闭窗口后快捷键照常可用；再次启动 DeskInfer 即可显示窗口。</translation>
    </message>
</context>
</TS>
